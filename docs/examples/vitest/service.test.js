import { expect, inject, test } from 'vitest'

const url = inject('url')

test('it serves', async () => {
  const answer = await fetch(`${url}/hello`)
  expect(await answer.text()).toBe('hello from web\n')
})

test('what is not there is not found', async () => {
  const answer = await fetch(`${url}/no-such-page`)
  expect(answer.status).toBe(404)
})
