// A real Lyric for tests: its library with all routes that tutti reads and those that change records, without authentication. It prints its
// address when it serves, and ends with its standard input, so that it never outlives a test that was killed.
//
// Environment: PG_HOST, PG_PORT, PG_DATABASE, PG_USER, PG_PASSWORD (the database, whose tables it makes), LECTERN_URL (the dictionaries),
// KAFKA_BROKERS and KAFKA_TOPIC (where it publishes each record of a commit), PLURALIZE (true: the names of nested collections are plurals).
import express from 'express';
import { Kafka, logLevel } from 'kafkajs';
import { createKafkaPublisher, errorHandler, migrate, provider } from '@overture-stack/lyric';

const { env, stdin } = process;
stdin.on('end', () => process.exit(0)).resume();
const db = { host: env.PG_HOST, port: Number(env.PG_PORT), database: env.PG_DATABASE, user: env.PG_USER, password: env.PG_PASSWORD };
await migrate(db);
const producer = new Kafka({ clientId: 'lyric', brokers: env.KAFKA_BROKERS.split(','), logLevel: logLevel.ERROR }).producer();
await producer.connect();
const { routers } = provider({
  auth: { enabled: false },
  db,
  features: { audit: { enabled: true }, recordHierarchy: { pluralizeSchemasName: env.PLURALIZE === 'true' } },
  idService: { useLocal: true, customAlphabet: '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', customSize: 21 },
  logger: { level: 'warn' },
  schemaService: { url: env.LECTERN_URL },
  submissionService: { maxFileSize: 10 << 20 },
  validator: [],
  onFinishCommit: createKafkaPublisher({ producer, topic: env.KAFKA_TOPIC }),
});
const app = express();
for (const [path, router] of Object.entries({ category: 'category', data: 'submittedData', dictionary: 'dictionary', submission: 'submission' })) {
  app.use(`/${path}`, routers[router]);
}
app.use(errorHandler);
const server = app.listen(0, '127.0.0.1', () => console.log(`LYRIC=http://127.0.0.1:${server.address().port}`));
