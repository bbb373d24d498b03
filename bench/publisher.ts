// node publisher.js PORT PATH RATE SIZE SECONDS [AUTHORIZATION]: a fixed rate over four pipelined connections, in a
// process of its own, so that its CPU is not the server's. Prints how many requests were answered with 2xx.
import { connect } from 'node:net';

const [port = '', path = '', rate = '', size = '', seconds = '', authorization = ''] = process.argv.slice(2);
const CONNECTIONS = 4;
let answered = 0;
const sockets = Array.from({ length: CONNECTIONS }, () => {
  const socket = connect(Number(port), '127.0.0.1');
  socket.setNoDelay(true);
  socket.on('data', (bytes) => {
    answered += bytes.toString('latin1').split(/HTTP\/1\.1 2\d\d/).length - 1;
  });
  return socket;
});
const padding = 'x'.repeat(Number(size));
const begin = performance.now();
let sent = 0;
const timer = setInterval(() => {
  const passed = (performance.now() - begin) / 1_000;
  while (sent < passed * Number(rate)) {
    const t = Math.round((performance.timeOrigin + performance.now()) * 1_000);
    const data = `{"t":${t},"n":${sent},"p":"${padding}"}`;
    const body = path === '/events' ? `{"channel":"bench","data":${data}}` : data;
    sockets[sent % CONNECTIONS]?.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\n${authorization ? `Authorization: ${authorization}\r\n` : ''}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    sent++;
  }
  if (passed < Number(seconds)) return;
  clearInterval(timer);
  setTimeout(() => {
    console.log(JSON.stringify({ sent, answered }));
    process.exit(0);
  }, 500);
}, 1);
