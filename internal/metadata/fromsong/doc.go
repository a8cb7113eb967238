// Package fromsong copies the studies, analysis types and analyses of a Song into tutti's built-in repository, from Song's PostgreSQL
// (versions 5.2 and 5.3) or through its routes. It knows the built-in repository only by the interfaces Target and Types, and must import
// no other package of tutti than internal/core.
package fromsong
