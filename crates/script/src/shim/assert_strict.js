export * from 'internal:assert';
export { strict as default } from 'internal:assert';
