import { BackendHealth, type HealthReport } from './backend-health.ts';
import { DemoModel } from './demo-model.ts';
import type { FinishReason, ModelBackend, ModelEvent, ModelInfo, ModelRequest, StreamOptions, Usage } from './model.ts';
import { asModelError, cancelled, ModelError, type ModelErrorCode } from './model-error.ts';
import { ModelPattern } from './model-pattern.ts';

export interface NamedBackend {
  readonly name: string;
  readonly backend: ModelBackend;
  /** Names of the models that it serves, `*` for any characters. None: whatever no other backend serves. */
  readonly models?: readonly string[];
}

/** What happened, for whoever counts. */
export interface ModelObserver {
  /** The first event of an answer came so long after it was asked for. */
  firstEvent?(backend: string, ms: number): void;
  /** Once per backend that was asked. */
  ended?(backend: string, outcome: FinishReason | ModelErrorCode, ms: number, usage: Usage | undefined): void;
  /** A model could not answer, and the next one is asked. */
  fellBack?(from: string, to: string, code: ModelErrorCode): void;
}

export interface ModelsOptions {
  /** None: the demo model serves every name. */
  readonly backends?: readonly NamedBackend[];
  /** Serves what no pattern fits. Default: the first backend without patterns. */
  readonly defaultBackend?: string;
  /** Default: a demo model at its own pace. */
  readonly demo?: ModelBackend;
  readonly observe?: ModelObserver;
  /** So long a list of models is good. Default 10,000. */
  readonly listForMs?: number;
  /** In milliseconds. */
  readonly now?: () => number;
}

export interface ModelStreamOptions extends StreamOptions {
  /** Models to ask, in this order, if the one of the request cannot answer. */
  readonly fallbacks?: readonly string[];
}

export interface ListedModel extends ModelInfo {
  readonly backend: string;
}

interface Entry {
  readonly name: string;
  readonly backend: ModelBackend;
  readonly patterns: readonly ModelPattern[];
  readonly health: BackendHealth;
}

const MAX_NAME = 256;
const MAX_FALLBACKS = 16;
const DEMO_BACKEND = 'demo';

/** Failures that say nothing about what another model would answer. */
const passes = (error: ModelError): boolean =>
  error.retryable || error.code === 'unavailable' || SILENT.has(error.code);
const SILENT: ReadonlySet<ModelErrorCode> = new Set(['not_found', 'rate_limited', 'timeout']);

const usageOf = ({ type: _, ...usage }: { readonly type: 'usage' } & Usage): Usage => usage;

/** All models, whoever serves them. */
export class Models {
  private readonly entries: readonly Entry[];
  private readonly fallback: Entry | undefined;
  private readonly options: ModelsOptions;
  private readonly now: () => number;
  private listed: { readonly at: number; readonly models: Promise<readonly ListedModel[]> } | undefined;

  constructor(options: ModelsOptions = {}) {
    const { backends = [], demo = new DemoModel(), defaultBackend } = options;
    this.options = options;
    this.now = options.now ?? Date.now;
    const named = backends.length > 0 ? backends : [{ name: DEMO_BACKEND, backend: demo }];
    this.entries = named.map(({ name, backend, models = [] }: NamedBackend) => ({
      ...{ name, backend, health: new BackendHealth(name) },
      patterns: models.map((text) => new ModelPattern(text)),
    }));
    if (new Set(named.map(({ name }) => name)).size < named.length)
      throw new Error('Two model backends have one name.');
    this.fallback =
      defaultBackend === undefined
        ? this.entries.find(({ patterns }) => patterns.length === 0)
        : this.entries.find(({ name }) => name === defaultBackend);
    if (defaultBackend !== undefined && !this.fallback) {
      throw new Error(`There is no model backend ${defaultBackend} to be the default.`);
    }
  }

  /** The name of the backend that serves a model: an exact name counts before a pattern, and the first one that fits. */
  backendOf(model: string): string | undefined {
    return this.serving(model)?.name;
  }

  /** An answer of the model, or of the first fallback that can give one. Once an event is out there is no other. */
  async *stream(request: ModelRequest, options: ModelStreamOptions = {}): AsyncGenerator<ModelEvent, void, undefined> {
    const { signal, fallbacks = [] } = options;
    const names = [...new Set([request.model, ...fallbacks.slice(0, MAX_FALLBACKS)])];
    let failure: ModelError | undefined;
    for (const [i, model] of names.entries()) {
      let begun = false;
      try {
        for await (const event of this.ask({ ...request, model }, signal)) {
          begun = true;
          yield event;
        }
        return;
      } catch (thrown) {
        const error = asModelError(thrown);
        failure ??= error; // what is told is why the model that was asked for did not answer
        if (begun || signal?.aborted) throw error;
        if (!passes(error)) throw failure;
        const next = names[i + 1];
        if (next !== undefined) this.options.observe?.fellBack?.(model, next, error.code);
      }
    }
    throw failure ?? cancelled();
  }

  /** What all backends list, for a short while from memory. One that does not answer is left out. */
  list(): Promise<readonly ListedModel[]> {
    const { listForMs = 10_000 } = this.options;
    if (!this.listed || this.now() - this.listed.at >= listForMs) {
      this.listed = { at: this.now(), models: this.askAll() };
    }
    return this.listed.models;
  }

  health(): HealthReport[] {
    return this.entries.map(({ health }) => health.report);
  }

  close(): void {
    for (const { backend } of this.entries) backend.close();
  }

  private serving(model: string): Entry | undefined {
    const fits = (exact: boolean) => (entry: Entry) =>
      entry.patterns.some((pattern) => pattern.exact === exact && pattern.matches(model));
    return this.entries.find(fits(true)) ?? this.entries.find(fits(false)) ?? this.fallback;
  }

  private async *ask(
    request: ModelRequest,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ModelEvent, void, undefined> {
    const { observe } = this.options;
    const { model } = request;
    const entry = model.length <= MAX_NAME ? this.serving(model) : undefined;
    if (!entry) throw new ModelError('not_found', `No backend serves the model ${model.slice(0, MAX_NAME)}.`);
    const begun = performance.now();
    let first = true;
    let usage: Usage | undefined;
    // Left by its reader before its end, which is a way to cancel.
    let outcome: FinishReason | ModelErrorCode = 'cancelled';
    try {
      for await (const event of entry.backend.stream(request, signal ? { signal } : {})) {
        if (first) observe?.firstEvent?.(entry.name, performance.now() - begun);
        first = false;
        if (event.type === 'usage') usage = usageOf(event);
        if (event.type === 'finish') {
          outcome = event.reason;
          entry.health.answered(this.now());
        }
        yield event;
      }
    } catch (thrown) {
      const error = asModelError(thrown);
      outcome = error.code;
      entry.health.failed(error, this.now());
      throw error;
    } finally {
      observe?.ended?.(entry.name, outcome, performance.now() - begun, usage);
    }
  }

  private async askAll(): Promise<readonly ListedModel[]> {
    const lists = await Promise.all(
      this.entries.map(async ({ name, backend, patterns, health }) => {
        const exact = patterns.filter((pattern) => pattern.exact).map(({ text }) => ({ id: text }));
        try {
          const models = await backend.models();
          health.answered(this.now());
          // Where patterns say what it serves, the rest of what it has cannot be reached.
          return [...models, ...exact].map((model) => ({ ...model, backend: name }));
        } catch (error) {
          health.failed(asModelError(error), this.now());
          return exact.map((model) => ({ ...model, backend: name }));
        }
      }),
    );
    const all = new Map<string, ListedModel>();
    for (const model of lists.flat()) {
      if (!all.has(model.id) && this.backendOf(model.id) === model.backend) all.set(model.id, model);
    }
    return [...all.values()];
  }
}
