import { Redis } from 'ioredis';

/** A replica's connection as the composition root gives it to the limits: there while it is ready, made anew when lost. */
export class ReplicaLink {
  private connection: Redis | undefined;
  private readonly port: number;

  constructor(port: number) {
    this.port = port;
  }

  readonly current = (): Redis | undefined => (this.connection?.status === 'ready' ? this.connection : undefined);

  async connect(): Promise<this> {
    this.cut();
    const redis = new Redis(this.port, '127.0.0.1', {
      lazyConnect: true,
      retryStrategy: () => null,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
    });
    redis.on('error', () => {});
    await redis.connect();
    this.connection = redis;
    return this;
  }

  cut(): void {
    // On a connection that has ended by itself ioredis would wait two seconds for nothing.
    if (this.connection?.status !== 'end') this.connection?.disconnect();
    this.connection = undefined;
  }
}
