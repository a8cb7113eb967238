// Package upstream owns what the streaming clients of metadata and tabular repositories share: one GET with its
// time-outs and error codes (Client), a JSON scanner that hands out the records of a page one by one without decoding
// them (Scanner), and the making of a Document out of a record (Splice). The protocols themselves are in sub-packages,
// which never import each other. It must not import ingest, consumers, http, or anything of the index or the queue.
package upstream
