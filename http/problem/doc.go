// Package problem is the body of every error response (RFC 9457; CONTRACT section 0), with additional members that existing clients read.
package problem
