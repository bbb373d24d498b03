import { Lingering } from './lingering.ts';
import { Track, type TrackOptions } from './track.ts';

export interface ShelfOptions extends Omit<TrackOptions, 'id'> {
  /** How long a stream stays after its last reader. */
  readonly lingerMs: number;
  /** This replica still writes it. */
  readonly isWritten: (id: string) => boolean;
}

/** The streams of jobs that this replica has in memory. What nobody reads leaves after a while, since readers come back. */
export class Shelf implements Iterable<Track> {
  private readonly options: ShelfOptions;
  private readonly tracks = new Map<string, Track>();
  private readonly unread: Lingering;
  private closed = false;

  constructor(options: ShelfOptions) {
    this.options = options;
    this.unread = new Lingering(options.lingerMs, (id) => this.letGo(id));
  }

  [Symbol.iterator](): IterableIterator<Track> {
    return this.tracks.values();
  }

  /** The one that is here, or a new one; it stays for now. */
  take(id: string): Track {
    this.unread.keep(id);
    let track = this.tracks.get(id);
    if (!track) {
      const { store, kindOf, holdOffMs } = this.options;
      track = new Track({ store, id, kindOf, holdOffMs });
      this.tracks.set(id, track);
    }
    return track;
  }

  /** Somebody reads it no longer, or it is over. */
  leave(id: string): void {
    if (this.closed) return;
    // What an embedded store has is not held twice: it may be thousands a second.
    if (this.options.store.embedded && this.tracks.get(id)?.over) this.letGo(id);
    else this.unread.put(id);
  }

  /** There is no such job. Another one of this id may have come meanwhile: it stays. */
  drop(track: Track): void {
    if (this.tracks.get(track.id) === track) this.forget(track.id);
  }

  close(): void {
    this.closed = true;
    this.unread.close();
    for (const track of this.tracks.values()) track.close();
    this.tracks.clear();
  }

  private letGo(id: string): void {
    if ((this.tracks.get(id)?.waiters.size ?? 0) === 0 && !this.options.isWritten(id)) this.forget(id);
  }

  private forget(id: string): void {
    this.tracks.get(id)?.close();
    this.tracks.delete(id);
  }
}
