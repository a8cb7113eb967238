// Package core defines the domain types of tutti that everything shares, and their rules: Repository, Request, Record, Version, Batch,
// Outcome, Job, DeadLetter, Message, Catalogue and Error. It imports only the standard library; every other package may import it.
//
// Nouns of one part of the domain are in a package of their own below: datamodel (studies, analyses and their types), idlist (lists of ids
// of a job) and jobsum (the organizations of a job as sums and lists). These may import core, never the reverse. A type belongs here if
// packages that do not know each other pass it on; what one package makes and others only show belongs beside that package.
package core
