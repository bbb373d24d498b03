import type { Request } from 'express';
import { AuthError } from './auth-error.ts';
import { type Credential, type CredentialOptions, findCredential } from './credentials.ts';
import { isSafeMethod, isTrustedOrigin } from './origin.ts';
import type { Principal } from './principal.ts';
import type { Tickets } from './tickets.ts';
import type { Verifier } from './verifier.ts';

export interface AuthenticatorOptions {
  readonly verifier: Verifier;
  readonly tickets: Tickets;
  /** Refuse credentials over plain HTTP from elsewhere than this machine; for production. Default false. */
  readonly requireTls?: boolean;
  /** Origins whose pages may use the cookie with unsafe methods: the list of CORS. Default none. */
  readonly allowedOrigins?: readonly string[];
}

/** A principal and how it was shown. */
export interface Identity extends Credential {
  readonly principal: Principal;
}

const LOOPBACK = /^(?:::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/;

const isLoopback = (address: string | undefined): boolean => address !== undefined && LOOPBACK.test(address);

/** Every credential of every protocol is judged here. */
export class Authenticator {
  private readonly verifier: Verifier;
  private readonly tickets: Tickets;
  private readonly requireTls: boolean;
  private readonly allowedOrigins: readonly string[];

  constructor({ verifier, tickets, requireTls = false, allowedOrigins = [] }: AuthenticatorOptions) {
    this.verifier = verifier;
    this.tickets = tickets;
    this.requireTls = requireTls;
    this.allowedOrigins = allowedOrigins;
  }

  /** Undefined if the request carries no credential; a bad one throws an `AuthError`, it never counts as none. */
  async authenticate(request: Request, options: CredentialOptions = {}): Promise<Principal | undefined> {
    return (await this.identify(request, options))?.principal;
  }

  /** For routes that are not public. */
  async require(request: Request): Promise<Principal> {
    return (await this.requireIdentity(request)).principal;
  }

  async requireIdentity(request: Request): Promise<Identity> {
    const identity = await this.identify(request);
    if (!identity) throw new AuthError('missing', 'The request carries no token.');
    return identity;
  }

  async identify(request: Request, options: CredentialOptions = {}): Promise<Identity | undefined> {
    const credential = findCredential(request, options);
    if (!credential) return undefined;
    this.checkWire(request);
    if (credential.source === 'cookie') this.checkOrigin(request);
    return { ...credential, principal: await this.principalOf(request, credential) };
  }

  /** For what acts on the cookie. */
  checkOrigin(request: Request): void {
    if (isSafeMethod(request.method) || isTrustedOrigin(request, this.allowedOrigins)) return;
    throw new AuthError('origin', 'With the session cookie this request must come from a page of a trusted origin.');
  }

  private async principalOf(request: Request, { token, source }: Credential): Promise<Principal> {
    if (source !== 'ticket') return this.verifier.verify(token);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new AuthError('ticket', 'A ticket can only be used with GET or HEAD.');
    }
    return this.tickets.open(token, request.originalUrl);
  }

  private checkWire(request: Request): void {
    if (!this.requireTls || request.secure) return;
    // Both: behind a trusted proxy on this machine the socket is local and the client is not.
    if (isLoopback(request.socket.remoteAddress) && isLoopback(request.ip)) return;
    throw new AuthError('plain_http', 'Credentials are refused over plain HTTP; use https.');
  }
}
