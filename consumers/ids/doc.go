// Package ids processes the lists of ids of jobs, a page of a list at a time: each id is fetched and written or removed, and gets an outcome, which
// is stored for the caller of the job. A list has the organization of its records, or none if they are of
// any organization of the repository.
//
// It imports internal/core with idlist and the packages consumers/fetch, loop, outage, outcome and state.
package ids
