export const fine = () => true;
export const value = 1;
