// Who follows the jobs of bench/jobs.ts from another process: as another replica, or over HTTP.
import { once } from 'node:events';
import { connect } from 'node:net';
import { Latencies, openJobs, optionsOfProcess, readAll, serve } from './jobs-shared.ts';

export type ClientOptions = { readonly ids: readonly string[] } & (
  | { readonly url: string } // another replica, on this Redis
  | { readonly port: number } // over HTTP
);

const options = optionsOfProcess<ClientOptions>();
const latencies = new Latencies();

/** Frames, without the chunks around them: they need not be understood to see where events begin. */
const readFrames = async (id: string, port: number): Promise<void> => {
  const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
  socket.write(`GET /${id} HTTP/1.1\r\nHost: x\r\n\r\n`);
  let text = '';
  const answered = once(socket, 'data');
  socket.on('data', (more: string) => {
    text += more;
    let begin = 0;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', begin)) {
      const at = text.indexOf('data: ', begin) + 6;
      if (at >= 6 && at < end) latencies.saw(text.slice(at, end));
      begin = end + 2;
    }
    text = text.slice(begin);
  });
  await answered;
};

if ('url' in options) {
  const jobs = await openJobs(options.url);
  for (const id of options.ids) {
    const reader = await jobs.attach(id, { after: 0 });
    if (reader) readAll(reader, latencies);
  }
} else {
  for (const id of options.ids) await readFrames(id, options.port);
}

serve(true, {
  start: () => {
    latencies.start();
    return true;
  },
  result: () => latencies.result(),
});
