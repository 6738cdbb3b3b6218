/** Defined is T with optional members that are never undefined. */
export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** omitUndefined returns a copy without the members that are undefined. */
export function omitUndefined<T extends object>(members: T): Defined<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>;
}
