import { Places } from '../../src/environments/places.ts';

describe('places', () => {
  const begun: string[] = [];
  const people = new Map<string, object>();
  const person = (name: string): object => {
    const known = people.get(name) ?? { name };
    people.set(name, known);
    return known;
  };
  const take = (places: Places, name: string): boolean => places.take(person(name), () => begun.push(name));
  const leave = (places: Places, name: string): void => places.leave(person(name));
  beforeEach(() => {
    begun.length = 0;
  });

  it('are given at once while there are some, then in the order of the line, and refused when that is full', () => {
    const places = new Places(2, 2);
    const taken = ['a', 'b', 'c'].map((name) => take(places, name));
    expect(places.full).toBe(false);
    taken.push(take(places, 'd'));
    expect(places.full).toBe(true);
    expect([...taken, take(places, 'e')]).toEqual([true, true, true, true, false]);
    expect(begun).toEqual(['a', 'b']);
    leave(places, 'b');
    expect(begun).toEqual(['a', 'b', 'c']);
    expect(places.full).toBe(false);
    leave(places, 'a');
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
    expect([take(places, 'f'), take(places, 'g'), take(places, 'h')]).toEqual([true, true, false]);
    expect(begun).toHaveLength(4);
  });

  it('are without number when that is 0', () => {
    const places = new Places(0, 0);
    for (let i = 0; i < 100; i++) expect(take(places, `${i}`)).toBe(true);
    expect(places.full).toBe(false);
    expect(begun).toHaveLength(100);
  });

  it('are not freed by those who only wait, nor by those who never came, nor twice', () => {
    const places = new Places(1, 3);
    for (const name of ['a', 'b', 'c', 'd']) take(places, name);
    leave(places, 'b'); // out of the line
    leave(places, 'nobody');
    expect(begun).toEqual(['a']);
    leave(places, 'a');
    leave(places, 'a');
    expect(begun).toEqual(['a', 'c']);
    leave(places, 'c');
    expect(begun).toEqual(['a', 'c', 'd']);
    leave(places, 'd');
    expect(take(places, 'e')).toBe(true);
    expect(begun).toEqual(['a', 'c', 'd', 'e']);
  });

  it('are taken by the next before it begins, so that whoever it brings along waits', () => {
    const places = new Places(1, 1);
    take(places, 'a');
    places.take(person('b'), () => {
      begun.push('b');
      take(places, 'c');
    });
    leave(places, 'a');
    expect(begun).toEqual(['a', 'b']);
    leave(places, 'b');
    expect(begun).toEqual(['a', 'b', 'c']);
  });
});
