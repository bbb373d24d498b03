/** Something that is open for long and can be sent away when the gateway stops. */
export interface Drainable {
  /** Ends it in such a way that the client comes back, not before `retryMs` if it can be told. */
  drain(retryMs: number): void;
}
