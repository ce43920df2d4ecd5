//! The routes of the server, made from the tables of pages and of the API.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::routing::{MethodFilter, on};
use hyper::{StatusCode, Uri};

use super::endpoint::{ENDPOINTS, Endpoint};
use super::openapi::openapi;
use super::page::{PAGES, Page};
use super::problem::{Problem, json_answer};
use super::service::{Call, Service};
use super::tokens::Role;
use crate::http_server::Answer;

/// Address of the OpenAPI description.
const OPENAPI: &str = "/api/openapi.json";

/// Returns the routes.
pub fn router(service: &Arc<Service>) -> Router {
    let mut router = Router::new();
    for endpoint in ENDPOINTS {
        let service = Arc::clone(service);
        let method = if endpoint.role == Role::Read { MethodFilter::GET } else { MethodFilter::POST };
        let handler = move |parts: RawPathParams, request: Request| {
            let service = Arc::clone(&service);
            let parts = decoded(&parts);
            async move { of_api(service, endpoint, parts, request).await.unwrap_or_else(|problem| problem.to_json()) }
        };
        router = router.route(endpoint.path, on(method, handler));
    }
    for page in PAGES {
        let service = Arc::clone(service);
        let handler = move |parts: RawPathParams, request: Request| {
            let service = Arc::clone(&service);
            let parts = decoded(&parts);
            let as_answer = if page.is_for_scripts { Problem::to_text } else { Problem::to_page };
            async move { of_page(service, page, parts, request).await.unwrap_or_else(|problem| as_answer(&problem)) }
        };
        router = router.route(page.path, on(MethodFilter::GET, handler));
    }
    let of_description = Arc::clone(service);
    let description = move |request: Request| {
        let allowed = of_description.authorize(request.headers(), Role::Read);
        async move { allowed.map_or_else(|problem| problem.to_json(), |()| json_answer(StatusCode::OK, &openapi())) }
    };
    let of_rest = Arc::clone(service);
    let rest = move |uri: Uri, request: Request| {
        let allowed = of_rest.authorize(request.headers(), Role::Read);
        let problem = allowed.err().unwrap_or_else(|| Problem::not_found("There is no such page."));
        async move { if is_of_api(&uri) { problem.to_json() } else { problem.to_page() } }
    };
    let other_method = |uri: Uri| async move {
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "This address does not have this method.");
        if is_of_api(&uri) { problem.to_json() } else { problem.to_page() }
    };
    router.route(OPENAPI, on(MethodFilter::GET, description)).fallback(rest).method_not_allowed_fallback(other_method)
}

fn is_of_api(uri: &Uri) -> bool {
    uri.path().starts_with("/api/")
}

fn decoded(parts: &RawPathParams) -> Vec<(String, String)> {
    parts.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

async fn of_api(
    service: Arc<Service>,
    endpoint: &'static Endpoint,
    parts: Vec<(String, String)>,
    request: Request,
) -> Result<Answer, Problem> {
    service.authorize(request.headers(), endpoint.role)?;
    let call = Call::read(parts, request).await?;
    call.check(endpoint.parameters, endpoint.fields)?;
    service.blocking(move |service| (endpoint.handler)(service, &call)).await
}

async fn of_page(
    service: Arc<Service>,
    page: &'static Page,
    parts: Vec<(String, String)>,
    request: Request,
) -> Result<Answer, Problem> {
    service.authorize(request.headers(), Role::Read)?;
    let call = Call::read(parts, request).await?;
    call.check(page.parameters, &[])?;
    service.blocking(move |service| (page.handler)(service, &call)).await
}
