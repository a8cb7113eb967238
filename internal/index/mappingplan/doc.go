// Package mappingplan is the answer to the question how the index of a repository differs from its configuration: a Plan, with a Field
// for each field and a Setting for each setting that differs, and the next steps. It owns the members that clients see, as JSON;
// internal/app/compare computes them, the HTTP routes and the command line show them.
//
// A new difference is a member of Plan. It imports the standard library only.
package mappingplan
