package server

import (
	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/access"
)

// mountAPI adds the operations of openapi.yaml. A test compares the routes with the document.
func (s *Server) mountAPI(r chi.Router) {
	r.Get(livePath, s.livez)
	r.Get(readyPath, s.readyz)
	r.Get("/version", s.getVersion)
	r.Get("/openapi.yaml", s.openapiYAML)
	r.Get("/openapi.json", s.openapiJSON)
	r.Post("/v1/locks/{name}/acquire", s.acquireLock)
	r.Post("/v1/locks/{name}/renew", s.renewLease)
	r.Post("/v1/locks/{name}/release", s.releaseLease)
	r.Post("/v1/locks/{name}/revoke", s.revokeLock)
	r.Get("/v1/locks/{name}", s.getLock)
	r.Get("/v1/locks/{name}/queue", s.getQueue)
	r.Get("/v1/locks/{name}/holds", s.listHolds)
	r.Get("/v1/locks", s.listLocks)
	r.Post("/v1/acquire", s.acquireSet)
	r.Post("/v1/renew", s.renewSet)
	r.Post("/v1/release", s.releaseSet)
	r.Post("/v1/batch", s.batch)
	r.Get("/v1/sessions", s.listSessions)
	r.Post("/v1/sessions", s.openSession)
	r.Post("/v1/sessions/renew", s.renewSession)
	r.Post("/v1/sessions/close", s.closeSession)
	r.Get("/v1/sessions/{session}", s.getSession)
	r.Post("/v1/sessions/{session}/revoke", s.revokeSession)
	r.Get("/v1/trees", s.listTrees)
	r.Put("/v1/trees/{root}", s.declareTree)
	r.Delete("/v1/trees/{root}", s.removeTree)
	r.Get("/v1/freezes", s.listFreezes)
	r.Put("/v1/freezes/{scope}", s.freeze)
	r.Get("/v1/freezes/{scope}", s.getFreeze)
	r.Delete("/v1/freezes/{scope}", s.thaw)
	r.With(s.withSteps(s.forAll(access.Admin))).Get("/v1/service", s.getService)
	r.Get("/v1/cells", s.listCells)
	r.Get("/v1/rules", s.listRules)
	r.Put("/v1/rules/{scope}", s.setRule)
	r.Delete("/v1/rules/{scope}", s.removeRule)
	r.Get("/v1/events", s.listEvents)
	r.Post("/v1/events/wait", s.waitForEvents)
	r.Get("/v1/events/stream", s.streamEvents)
	r.Post("/v1/tokens/verify", s.verifyToken)
	r.Post("/v1/tokens/report", s.reportStaleToken)
	r.Get("/v1/fenced/{key}", s.readFenced)
	r.Put("/v1/fenced/{key}", s.writeFenced)
}
