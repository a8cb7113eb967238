// Package core owns the nouns of tutti and their rules: Repository, Request, Record, Version, Batch, Outcome, Job,
// DeadLetter, Message and Error. It imports the standard library alone and nothing of tutti; every other package may
// import it.
package core
