/** Query parameters whose values open something. */
export const SECRET_PARAMETERS: ReadonlySet<string> = new Set([
  'token',
  'ticket',
  'apikey',
  'api_key',
  'key',
  'access_token',
  'secret',
]);

/** Headers that must never be logged, in lower case as node gives them. */
export const SECRET_HEADERS: readonly string[] = [
  'authorization',
  'x-api-key',
  'apikey',
  'cookie',
  'set-cookie',
  'x-secrets',
  'proxy-authorization',
];

const isSecret = (name: string): boolean => {
  let plain = name;
  try {
    plain = decodeURIComponent(name); // %74oken is read as token, so it must be hidden as token
  } catch {
    // not an escape: compared as it is
  }
  return SECRET_PARAMETERS.has(plain.toLowerCase());
};

/** For logs. Works on any text that has a query, whether it is a valid URL or not. */
export const redactUrl = (url: string): string =>
  url.replace(/([?&#])([^=&#?]*)=([^&#]*)/g, (whole, mark: string, name: string) =>
    isSecret(name) ? `${mark}${name}=***` : whole,
  );
