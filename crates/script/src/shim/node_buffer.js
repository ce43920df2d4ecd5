export const { Buffer, atob, btoa } = globalThis;
export default { Buffer, atob, btoa };
