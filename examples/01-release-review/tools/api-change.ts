import type { HttpMethod } from "./openapi-document.ts";

export type ApiChangeKind =
  | "path_added"
  | "path_removed"
  | "operation_added"
  | "operation_removed"
  | "operation_deprecated"
  | "security_changed"
  | "parameter_added"
  | "parameter_removed"
  | "parameter_now_required"
  | "parameter_now_optional"
  | "request_body_added"
  | "request_body_removed"
  | "request_body_now_required"
  | "request_body_now_optional"
  | "response_added"
  | "response_removed"
  | "media_type_added"
  | "media_type_removed"
  | SchemaChangeKind;

export type SchemaChangeKind =
  | "type_changed"
  | "enum_values_added"
  | "enum_values_removed"
  | "format_changed"
  | "pattern_changed"
  | "limit_changed"
  | "property_added"
  | "property_removed"
  | "property_now_required"
  | "property_now_optional"
  | "unknown_properties_changed"
  | "variant_added"
  | "variant_removed";

/** Which part of an operation a change is about, fine enough to ask whether a given client uses that part. */
export type ApiSubject =
  | { readonly part: "operation" }
  | { readonly part: "parameter"; readonly in: string; readonly name: string }
  /** `field` is a path such as `items[].sku`; empty for the body as a whole. */
  | { readonly part: "request"; readonly field: string }
  | { readonly part: "response"; readonly status: string; readonly field: string };

/** One difference between two versions of an API, judged from the side of a client written for the first. */
export interface ApiChange {
  readonly kind: ApiChangeKind;
  /** The path template of the old version where it has one, else of the new. */
  readonly path: string;
  /** Absent when the change concerns the whole path. */
  readonly method?: HttpMethod;
  readonly subject: ApiSubject;
  /** JSON Pointer into the new document, or into the old one for what was removed. */
  readonly pointer: string;
  /** True when a client that was correct before can fail, or silently do something else, after. */
  readonly breaking: boolean;
  readonly why: string;
}
