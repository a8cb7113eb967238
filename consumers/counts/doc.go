// Package counts counts the JSON kinds of the records of a repository's runs, keeps the counts of the last run, and returns those with which a
// rebuild decides the types of fields: the kept ones with the records that have changed since or, if these decide nothing for certain, those
// of a reading of all records.
//
// Kinds are the counts of one repository, with a Counter for each page that counts. What is kept at the end of a run is in kept.go, what has
// changed since in changes.go, the reading of all records in read.go; what is said about fields that are gone in fields.go. Which type follows
// from the counts is decided by the caller of OfRebuild.
//
// It imports internal/core with jobsum and the packages consumers/fetch, loop, outage, outcome, state and sweep.
package counts
