// Package system is the surface of API keys, probes, metrics and the pages of the OpenAPI document. It imports the core of http, no
// other surface.
package system
