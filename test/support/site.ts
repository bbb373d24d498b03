import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { running } from './running.ts';

const PAGE = '<!doctype html><title>A page of the tests</title>';

/** A web site: serves an empty `/page`, and passes everything else on to a gateway, if it has one. */
export class Site {
  private readonly server: Server;

  private constructor(gatewayPort: number | undefined) {
    this.server = createServer((req, res) => {
      if (req.url === '/page') {
        res.writeHead(200, { 'Content-Type': 'text/html' }).end(PAGE);
        return;
      }
      if (gatewayPort === undefined) {
        res.writeHead(404).end();
        return;
      }
      const { method, headers, url: path } = req;
      const passed = request({ host: '127.0.0.1', port: gatewayPort, path, method, headers }, (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        res.flushHeaders();
        answer.on('error', () => res.destroy());
        answer.pipe(res);
      });
      passed.on('error', () => res.destroy());
      res.on('close', () => passed.destroy());
      req.pipe(passed);
    });
  }

  static start(gatewayPort?: number): Promise<Site> {
    const site = new Site(gatewayPort);
    running.add(site);
    return new Promise((resolve) => {
      site.server.listen(0, '127.0.0.1', () => resolve(site));
    });
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    running.delete(this);
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }
}
