// Package problem is the body of every error (RFC 9457; CONTRACT section 0), with the members that existing clients of a surface find.
package problem
