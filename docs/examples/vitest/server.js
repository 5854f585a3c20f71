// What is tested. The pod's port is in PORT.
import { createServer } from 'node:http'

createServer((request, response) => {
  const known = request.url === '/health' || request.url === '/hello'
  response.writeHead(known ? 200 : 404, { 'content-type': 'text/plain' })
  response.end(known ? `hello from ${process.env.KIROCREW_POD_NAME}\n` : '')
}).listen(Number(process.env.PORT), '127.0.0.1')
