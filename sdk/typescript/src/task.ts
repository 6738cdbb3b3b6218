import { environment, randomUUID, taskStorage } from './platform.js';

/** maxTaskIdLength is the greatest length of a task's id. */
const maxTaskIdLength = 256;

/**
 * newTask returns the task of a new lease: a part of the task around it, or of the process, or a new one. Each lease has
 * its own, so that pieces of work under one lease may wait for each other's locks.
 */
export async function newTask(): Promise<string> {
  const id = (await randomUUID()).replaceAll('-', '');
  const outer = (await taskStorage())?.getStore() ?? environment('PADDOCK_TASK');
  return outer && outer.length + 9 <= maxTaskIdLength ? `${outer}.${id.slice(0, 8)}` : id;
}

/** maxLabelLength is the greatest length of the label of a task that was given. */
const maxLabelLength = 40;

/**
 * taskLabel returns a name of the work for people: the given task, or the beginning of the random one of the outermost
 * guard, so that all locks of that work have the same label. Browsers have no tasks.
 */
export async function taskLabel(given: string | undefined, task: string): Promise<string | undefined> {
  const storage = await taskStorage();
  if (given !== undefined || !storage) {
    return given?.slice(0, maxLabelLength);
  }
  const process = `${environment('PADDOCK_TASK')}.`;
  const own = task.startsWith(process) ? task.slice(process.length) : task;
  const [outermost] = own.split('.');
  return outermost!.slice(0, 8);
}

/** asTask runs the work as the task: locks that it acquires are of parts of it. Browsers have no tasks. */
export async function asTask<T>(task: string | undefined, work: () => T | Promise<T>): Promise<T> {
  const storage = await taskStorage();
  return storage && task ? storage.run(task, work) : work();
}
