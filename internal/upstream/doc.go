// Package upstream contains what the streaming clients of metadata and tabular repositories share: GET requests with timeouts and
// error codes (Client), a JSON scanner that returns the records of a page one by one without decoding them (Scanner), and the
// conversion of a record into a Document (Splice). The protocols are in sub-packages, which never import each other. It must not
// import ingest, consumers, http, the index or the queue.
package upstream
