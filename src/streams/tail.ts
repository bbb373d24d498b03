/** Numbered things in rising order that come at the end and leave at the front. */
export class Tail<T extends { readonly seq: number }> {
  private items: T[] = [];
  private start = 0;

  get length(): number {
    return this.items.length - this.start;
  }

  get first(): T | undefined {
    return this.items[this.start];
  }

  push(item: T): void {
    this.items.push(item);
  }

  shift(): T | undefined {
    const item = this.items[this.start];
    if (item === undefined) return undefined;
    this.start++;
    // Moving everything at each step would be quadratic: move once the dead part is as long as the living one.
    if (this.start * 2 >= this.items.length) {
      this.items = this.items.slice(this.start);
      this.start = 0;
    }
    return item;
  }

  clear(): void {
    this.items = [];
    this.start = 0;
  }

  /** What comes after a number, at most `count` of it. */
  after(seq: number, count = Number.POSITIVE_INFINITY): T[] {
    let low = this.start;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.items[middle] as T).seq > seq) high = middle;
      else low = middle + 1;
    }
    return this.items.slice(low, Math.min(this.items.length, low + count));
  }

  /** The last `count`. */
  newest(count: number): T[] {
    return this.items.slice(Math.max(this.start, this.items.length - count));
  }
}
