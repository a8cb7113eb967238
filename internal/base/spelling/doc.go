// Package spelling finds what a misspelled name probably means: the nearest of many candidates, for the hints of messages. It owns the
// distance between names, what is close enough to be suggested, and the bound on the cost of a search. A name is any text of a client:
// a field, a key, a route.
//
// Another measure of distance goes into nearest.go; a message that suggests a name calls Suggest. It imports the standard library only.
package spelling
