// Package jobsum sums and lists the organizations of a job. It owns how totals and states of organizations add up to a Sum, and the order
// of their lists; what a job and a run over one organization are is in internal/core.
//
// A Change is a Sum after a change, an OrganizationPage one page of a list. A new figure of a job is a member of Sum, which Add and AddSum
// add. It may import internal/core only.
package jobsum
