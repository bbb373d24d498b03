export type RedactUrl = (url: string) => string;

const decoded = (name: string): string => {
  try {
    return decodeURIComponent(name.replaceAll('+', ' ')).toLowerCase();
  } catch {
    return name.toLowerCase();
  }
};

/** Replaces the values of the named query parameters, however their names are written, and leaves the rest as it came. */
export const urlRedactor = (parameters: readonly string[]): RedactUrl => {
  const secret = new Set(parameters.map((name) => name.toLowerCase()));
  return (url) => {
    const start = url.indexOf('?');
    if (start < 0) return url;
    const query = url
      .slice(start + 1)
      .split('&')
      .map((pair) => {
        const [name = ''] = pair.split('=', 1);
        // a[b]= and a= are the same parameter to some parsers
        return secret.has(decoded(name).replace(/\[.*$/, '').trim()) ? `${name}=***` : pair;
      });
    return `${url.slice(0, start)}?${query.join('&')}`;
  };
};
