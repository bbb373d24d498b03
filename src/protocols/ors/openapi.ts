import { TOKEN } from '../../auth/openapi.ts';
import { type ApiPart, json, type Operation, type Parameter, type PathItem, parameterRef } from '../../ops/openapi.ts';
import { orsTokenRefusals, type RefusalStatus } from '../../ops/refusals.ts';
import { type Described, ENVIRONMENT_OPERATIONS, ROOT_OPERATIONS, SID } from './operations.ts';
import { IDEMPOTENCY_KEY, SESSION_ID } from './routes.ts';
import { ORS_SCHEMAS } from './schemas.ts';

/** Where ORS is found and who may use it. */
export interface OrsPlace {
  readonly prefix: string;
  /** Nobody needs a token. */
  readonly open: boolean;
}

const itemOf = (described: Described, { open }: OrsPlace, more: Partial<Described> = {}): PathItem => {
  const {
    method,
    operationId,
    summary,
    description,
    parameters,
    body,
    answer,
    refusals = [],
  } = {
    ...described,
    ...more,
  };
  const operation: Operation = {
    operationId,
    summary,
    ...(description !== undefined && { description }),
    security: open ? [{}, ...TOKEN] : TOKEN,
    ...(parameters !== undefined && { parameters: parameters.map(parameterRef) }),
    ...(body && { requestBody: { required: body.optional !== true, content: json(body.schema, body.example) } }),
    responses: { '200': { description: summary, ...answer }, ...orsTokenRefusals(...refusals) },
  };
  return { [method]: operation };
};

/** Each once by itself, for the default environment, and once with a name in front. */
const inEnvironment = (suffix: string, described: Described, place: OrsPlace): [path: string, item: PathItem][] => {
  const { operationId, parameters = [], refusals = [] } = described;
  return [
    [
      `/${suffix}`,
      itemOf(described, place, { parameters: ['Deployment', ...parameters], refusals: [...refusals, 404] }),
    ],
    [
      `/{env}/${suffix}`,
      itemOf(described, place, {
        operationId: `${operationId}Of`,
        parameters: ['EnvironmentName', ...parameters],
        refusals: [...new Set<RefusalStatus>([400, ...refusals, 404])], // 400: a name that cannot be decoded
      }),
    ],
  ];
};

const header = (
  name: string,
  description: string,
  more: Pick<Parameter, 'schema'> & Partial<Parameter>,
): Parameter => ({
  ...{ name, in: 'header', description },
  ...more,
});

export const orsPart = (place: OrsPlace): ApiPart => {
  const under = place.prefix === '/' ? '' : place.prefix;
  const items = [
    ...Object.entries(ROOT_OPERATIONS).map(([path, described]) => [`/${path}`, itemOf(described, place)] as const),
    ...Object.entries(ENVIRONMENT_OPERATIONS).flatMap(([suffix, described]) => inEnvironment(suffix, described, place)),
  ];
  return {
    tag: {
      name: 'ors',
      description: 'Open Reward Standard: environments in which models are trained. Errors are `{detail}`.',
    },
    paths: Object.fromEntries(items.map(([path, item]) => [under + path, item])),
    components: {
      schemas: ORS_SCHEMAS,
      parameters: {
        EnvironmentName: {
          name: 'env',
          in: 'path',
          required: true,
          description: 'The name of an environment; case does not matter.',
          schema: { type: 'string' },
          example: 'sums',
        },
        SessionId: header('X-Session-ID', 'The session.', {
          required: true,
          schema: { type: 'string', pattern: SESSION_ID.source },
          example: SID,
        }),
        Deployment: header(
          'X-Deployment',
          'The environment where none is named, behind the last slash; the default one if there is none of that name.',
          { schema: { type: 'string' }, example: 'owner/sums' },
        ),
        Secrets: header(
          'X-Secrets',
          'Base64 of the JSON `{"NAME": {"value": "…"}}` or `{"NAME": "…"}`. Wins over the body, name by name.',
          { schema: { type: 'string', contentEncoding: 'base64' }, example: 'eyJUT0tFTiI6eyJ2YWx1ZSI6IngifX0=' },
        ),
        CallKey: header('Idempotency-Key', 'The same call of the same session with the same key is run once.', {
          schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
          example: 'step-12',
        }),
      },
      headers: {
        SluiceIdempotency: {
          description: '`honoured`: a call may be sent again with the same Idempotency-Key.',
          schema: { const: 'honoured' },
          example: 'honoured',
        },
      },
    },
  };
};
