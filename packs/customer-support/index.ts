// Exports every test of the pack, so that projects can select some of them.
export { default as angryCustomer } from "./tests/angry-customer.test.ts";
export { default as billingDispute } from "./tests/billing-dispute.test.ts";
export { default as productInquiry } from "./tests/product-inquiry.test.ts";
