// Package page processes one page of the list of an organization, from its rows to their outcomes.
//
// A Worker handles the messages of pages: it decides whether a page has to be read (admit), and dispatches pages of ids and groups of
// organizations. A work is one page until each of its records has an outcome or a Request of its own. It makes one pass or several: a pass
// reads the rows and writes their documents (pass.go), the page that follows is published (next.go), and the results of the documents are
// settled (settle.go). What is known of the records across the passes is in the ledger, what the page has shown of its list in the listing.
// An organization is the stored run as its page sees it: running, waiting for the index, or paused while the repository does not answer. A
// member is an organization of a group, whose state the group stores.
//
// A rule for rows belongs to pass.go or aside.go, one for the order of pages to next.go, one for the outcome of a document to settle.go.
// What ends an organization or a job is a function of Config, which the package run has.
//
// It imports internal/core with jobsum, internal/index/bulk and the packages consumers/counts, fetch, ids, loop, outage, outcome and state.
package page
