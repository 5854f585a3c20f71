// One pod for a whole vitest run, in a plane of its own: `up` returns when it answers, and at the end nothing of it is left. A run that is
// killed takes its pod along, as its owner.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'

const tool = process.env.KIROCREW_POD_BIN ?? 'kirocrew-pod'
const server = fileURLToPath(new URL('./server.js', import.meta.url))

export default function setup({ provide }) {
  const plane = mkdtempSync(join(tmpdir(), 'plane-'))
  const env = {
    ...process.env,
    KIROCREW_POD_ROOT: join(plane, 'pods'),
    KIROCREW_POD_ENV_DIR: join(plane, 'registry'),
    KIROCREW_POD_BACKEND: 'embedded',
  }
  const pod = (...words) => execFileSync(tool, words, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  const teardown = () => {
    pod('down', '--all')
    rmSync(plane, { recursive: true })
  }
  try {
    const report = JSON.parse(pod('up', 'web', '--json', '--owner', String(process.pid), '--health', 'http:/health', '--', process.execPath, server))
    provide('url', report.base_url)
  } catch (error) {
    teardown()
    throw error
  }
  return teardown
}
