// Package core defines the domain types of tutti and their rules: Repository, Request, Record, Version, Batch, Outcome, Job,
// DeadLetter, Message and Error. It imports only the standard library; every other package may import it.
package core
