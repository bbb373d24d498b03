import { Ajv, type ErrorObject, type SchemaObject, type ValidateFunction } from 'ajv';
import { suggestion } from '../config/suggestion.ts';
import { shown } from './finding.ts';
import type { ManifestDocument } from './manifest-document.ts';
import { isObject, listOf, objectOf } from './plain.ts';
import { pathOf, within } from './pointer.ts';

/** Words this short resemble each other by chance. */
const SHORTEST = 4;

/** A part of a manifest, held against our own schema. */
export class Shape {
  private readonly schema: SchemaObject;
  private readonly validate: ValidateFunction;

  constructor(schema: SchemaObject) {
    this.schema = schema;
    const ajv = new Ajv({ allErrors: true, verbose: true, allowUnionTypes: true, strictTypes: false });
    ajv.addKeyword('expects');
    ajv.addKeyword('nearly');
    this.validate = ajv.compile(schema);
  }

  check(document: ManifestDocument): void {
    if (!this.validate(document.value)) {
      const told = new Set<string>();
      for (const error of this.validate.errors ?? []) this.tell(error, document, told);
    }
    this.nearMisses(this.schema, document.value, '', document);
  }

  private tell(error: ErrorObject, document: ManifestDocument, told: Set<string>): void {
    const { instancePath, keyword, params, data, parentSchema } = error;
    if (keyword === 'propertyNames') {
      const pointer = within(instancePath, String(params.propertyName));
      const { expects } = objectOf(objectOf(parentSchema).propertyNames);
      document.error(pointer, `${shown(params.propertyName)} in ${pathOf(instancePath)} must be ${expects}.`, true);
      return;
    }
    if (error.propertyName !== undefined) return; // told above, as a whole
    if (keyword === 'required') {
      const missing = within(instancePath, String(params.missingProperty));
      document.error(instancePath, `${pathOf(missing)} is missing.`, true);
      return;
    }
    // Several rules may be broken at once; one sentence names them all.
    if (told.has(instancePath)) return;
    told.add(instancePath);
    const path = pathOf(instancePath);
    if (keyword === 'maxItems' || keyword === 'maxProperties') {
      document.error(instancePath, `${path} has more than ${params.limit} entries.`);
      return;
    }
    const expects = String(objectOf(parentSchema).expects ?? error.message);
    document.error(instancePath, `${path} must be ${expects}, not ${shown(data)}.`);
  }

  /** Keys that nobody reads, and that are nearly the name of one that we do read. */
  private nearMisses(written: SchemaObject, value: unknown, pointer: string, document: ManifestDocument): void {
    const schema = this.resolved(written);
    for (const [i, item] of listOf(value).entries()) {
      if (isObject(schema.items)) this.nearMisses(schema.items, item, within(pointer, i), document);
    }
    if (!isObject(value)) return;
    const known = objectOf(schema.properties);
    for (const [key, part] of Object.entries(value)) {
      const place = within(pointer, key);
      const below = Object.hasOwn(known, key) ? known[key] : schema.additionalProperties;
      if (isObject(below)) this.nearMisses(below, part, place, document);
      if (Object.hasOwn(known, key) || isObject(schema.additionalProperties) || key.length < SHORTEST) continue;
      const meant = suggestion(
        key,
        Object.keys(known).filter((name) => !Object.hasOwn(value, name)),
      );
      if (meant === undefined) continue;
      const message = `${pathOf(place)} is not read; did you mean ${meant}?`;
      document.report(2, schema.nearly === 'error' ? 'error' : 'warning', place, message, true);
    }
  }

  private resolved(schema: SchemaObject): SchemaObject {
    const name = typeof schema.$ref === 'string' ? schema.$ref.replace('#/definitions/', '') : undefined;
    return name === undefined ? schema : (objectOf(this.schema.definitions)[name] as SchemaObject);
  }
}
