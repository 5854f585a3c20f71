import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { globalSetup: './pod.setup.js' } })
