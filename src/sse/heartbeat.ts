import { type Framing, framed } from './framing.ts';

/** The bytes of a heartbeat, made once a second for all connections that are due in it. */
export class Heartbeat {
  private readonly text: (time: Date) => string;
  private readonly made: Partial<Record<Framing, { second: number; bytes: Buffer }>> = {};

  constructor(text: (time: Date) => string) {
    this.text = text;
  }

  bytes(framing: Framing, nowMs: number): Buffer {
    const second = Math.floor(nowMs / 1_000);
    let made = this.made[framing];
    if (made?.second !== second) {
      made = { second, bytes: framed(framing, this.text(new Date(second * 1_000))) };
      this.made[framing] = made;
    }
    return made.bytes;
  }
}
