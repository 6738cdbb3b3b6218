/** Given is T without its members that may be undefined being so: they are missing instead. */
export type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** given returns the members that are not undefined, and that JSON would therefore carry. */
export function given<T extends object>(members: T): Given<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Given<T>;
}
