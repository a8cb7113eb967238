// Package check looks at everything that a configuration names: it dials each service, looks at each folder, and says in
// one line each what is right or how to mend it. It changes nothing: no stream, index or topic is made, no lock is taken,
// and a folder's file is made only to see that it can be, and removed at once.
package check
