// Package memory has no code of its own: its tests measure the anonymous memory of a tutti in a process of its own, with records of many
// sizes in the embedded index or Elasticsearch, and compare it with what the operations guide promises.
package memory
