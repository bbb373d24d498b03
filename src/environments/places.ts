/** Places for sessions of one environment, and the line of those that wait for one. */
export class Places {
  private readonly most: number;
  private readonly mostWaiting: number;
  private readonly taken = new Set<object>();
  private readonly waiting = new Map<object, () => void>();

  /** 0: any number. */
  constructor(most: number, mostWaiting: number) {
    this.most = most;
    this.mostWaiting = mostWaiting;
  }

  /** Nobody can come in, or stand in line. */
  get full(): boolean {
    return this.most > 0 && this.taken.size >= this.most && this.waiting.size >= this.mostWaiting;
  }

  /** `begin` is called when there is a place, perhaps at once. False: no place, and no room in the line. */
  take(who: object, begin: () => void): boolean {
    if (this.full) return false;
    if (this.most > 0 && this.taken.size >= this.most) {
      this.waiting.set(who, begin);
      return true;
    }
    this.taken.add(who);
    begin();
    return true;
  }

  /** Who has left makes room for the next; more often than once does no harm. */
  leave(who: object): void {
    if (this.waiting.delete(who) || !this.taken.delete(who)) return;
    const [next] = this.waiting;
    if (!next) return;
    const [waiting, begin] = next;
    this.waiting.delete(waiting);
    this.taken.add(waiting);
    begin();
  }
}
