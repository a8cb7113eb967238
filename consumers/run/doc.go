// Package run starts and ends runs: it expands a repository into organizations, each by itself or in groups, and publishes their first pages; at
// the end of their pages it ends the organizations and the job, after a sweep, and moves the alias of a rebuild. The pages between are those of
// consumers/page.
//
// It imports internal/core with jobsum, internal/index/bulk and the packages consumers/counts, fetch, ids, loop, outage, outcome, page, state and sweep.
//
// Its tests are in consumers.
package run
