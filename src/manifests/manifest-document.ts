import type { Finding, Layer, Severity } from './finding.ts';
import type { Place } from './identity.ts';
import type { ManifestFile } from './manifest-files.ts';
import type { SourceDocument } from './source-document.ts';
import type { SourceText } from './source-text.ts';

/** A document under judgement: its values, and everything that was found out about it. */
export class ManifestDocument {
  readonly file: ManifestFile;
  /** From 1. */
  readonly number: number;
  readonly findings: Finding[] = [];
  private readonly text: SourceText;
  private readonly source: SourceDocument;
  private readonly most: number;
  private untold = 0;

  constructor(file: ManifestFile, number: number, text: SourceText, source: SourceDocument, most: number) {
    this.file = file;
    this.number = number;
    this.text = text;
    this.source = source;
    this.most = most;
  }

  get value(): unknown {
    return this.source.value;
  }

  get failed(): boolean {
    return this.untold > 0 || this.findings.some(({ severity }) => severity === 'error');
  }

  place(pointer: string, ofKey = false): Place {
    const { line, column } = this.text.placeOf(this.source.offsetOf(pointer, ofKey));
    return { file: this.file.path, document: this.number, line, column };
  }

  /** `ofKey`: it is the name that is wrong, not what stands behind it. */
  report(layer: Layer, severity: Severity, pointer: string, message: string, ofKey = false): void {
    this.add({ ...this.place(pointer, ofKey), pointer, layer, severity, message });
  }

  /** The text itself cannot be read. */
  reportFaults(): void {
    for (const { offset, pointer, message } of this.source.faults) {
      const { line, column } = this.text.placeOf(offset);
      this.add({
        ...{ file: this.file.path, document: this.number, line, column, pointer, message },
        ...{ layer: 1, severity: 'error' },
      });
    }
  }

  error(pointer: string, message: string, ofKey = false): void {
    this.report(2, 'error', pointer, message, ofKey);
  }

  warning(pointer: string, message: string, ofKey = false): void {
    this.report(2, 'warning', pointer, message, ofKey);
  }

  /** To be called once, when everything has been said. */
  conclude(): void {
    if (this.untold === 0) return;
    const message = `There is more to say about this document: ${this.untold} findings are left out.`;
    this.findings.push({ ...this.place(''), pointer: '', layer: 1, severity: 'error', message });
  }

  private add(finding: Finding): void {
    if (this.findings.length < this.most) this.findings.push(finding);
    else if (finding.severity === 'error' || finding.layer < 3) this.untold++;
  }
}
