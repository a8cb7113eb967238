// Package system is the surface of API keys, probes, metrics and the pages of the OpenAPI document. It imports shared packages of
// http, such as http/api, but no other surface.
package system
