// Package base holds the small packages that know nothing of tutti's work: every folder may import them, and they import one another and core
// at most. A helper that two capabilities need goes into one of them, or into a new one beside them; what speaks of repositories, jobs,
// documents or catalogues does not.
package base
