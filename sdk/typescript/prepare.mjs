// Builds dist/ when npm installs this folder. If another project installs it by path, npm only creates a link, so the
// dependencies are installed here first.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const compiler = fileURLToPath(new URL('node_modules/typescript/bin/tsc', import.meta.url));

function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { cwd: here, stdio: 'inherit', ...options });
  if (status !== 0) {
    console.error(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}. Run "npm ci" in ${here} for details.`);
    process.exit(1);
  }
}

if (!existsSync(compiler)) {
  run('npm', ['ci', '--ignore-scripts', '--include=dev', '--prefix', here], { shell: process.platform === 'win32' });
}
run(process.execPath, [compiler, '-p', here]);
