package queuetest

// Rights is the smallest set of rights with which everything works, as deploy/docs/engines.md grants them to a user of a server.
const Rights = `permissions: {
  publish: [
    "tutti.>", "$KV.tutti_jobs.>", "$JS.API.INFO", "$JS.ACK.REQUESTS.>", "$JS.API.CONSUMER.*.REQUESTS",
    "$JS.API.STREAM.*.REQUESTS", "$JS.API.STREAM.MSG.*.REQUESTS",
    "$JS.API.CONSUMER.*.REQUESTS.>", "$JS.API.CONSUMER.MSG.NEXT.REQUESTS.*",
    "$JS.API.STREAM.*.DEAD_LETTERS", "$JS.API.STREAM.MSG.*.DEAD_LETTERS",
    "$JS.API.CONSUMER.*.DEAD_LETTERS.>", "$JS.API.CONSUMER.MSG.NEXT.DEAD_LETTERS.*",
    "$JS.API.STREAM.*.SEEN_SIGNATURES", "$JS.API.STREAM.MSG.*.SEEN_SIGNATURES",
    "$JS.API.STREAM.*.KV_tutti_jobs", "$JS.API.STREAM.MSG.*.KV_tutti_jobs",
    "$JS.API.CONSUMER.*.KV_tutti_jobs.>", "$JS.API.CONSUMER.MSG.NEXT.KV_tutti_jobs.*"
  ]
  subscribe: ["_INBOX.>", "tutti.serves.>"]
  allow_responses: true
}`
